"""Helpers that tests of several folders share: servers, commands, files of every form, hostile wires, pages."""
