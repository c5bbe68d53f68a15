#!/bin/sh
# Takes out of the base image what a service has no use for: package managers (pip, apt, dpkg), perl, which only they
# need, documentation, and the parts of Python's library for developers. Licences stay, and dpkg's list for scanners.
# Then compiles the rest of Python's library, which the official image has no bytecode of.
set -eu
library=$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
for part in ensurepip idlelib lib2to3 turtledemo tkinter pydoc_data test distutils config-* site-packages; do
  rm -rf "$library"/$part
done
rm -rf /usr/local/include /usr/share/python-wheels /usr/lib/python3/dist-packages/pip* \
  /usr/lib/python3/dist-packages/setuptools* /usr/lib/python3/dist-packages/pkg_resources \
  /usr/lib/python3/dist-packages/wheel*
for folder in /usr/local/bin /usr/bin; do
  rm -f "$folder"/pip* "$folder"/wheel* "$folder"/idle* "$folder"/pydoc* "$folder"/2to3*
done
python3 -m compileall -q --invalidation-mode unchecked-hash "$library"

find /usr/share/doc -type f ! -name copyright -delete
find /usr/share/doc -type d -empty -delete
rm -rf /usr/share/man /usr/share/info /usr/share/locale /usr/share/lintian /usr/share/bug
rm -rf /usr/bin/perl* /usr/lib/*/perl* /usr/share/perl*
rm -rf /usr/bin/apt* /usr/lib/apt /usr/lib/*/libapt-* /etc/apt /var/lib/apt /var/cache /var/log /root/.cache /tmp/*
rm -rf /usr/bin/dpkg* /usr/sbin/dpkg* /usr/lib/dpkg /usr/share/dpkg /var/lib/dpkg/info /usr/bin/debconf*
mkdir -p /models /var/cache /var/log
