"""Long runs that look for what short ones do not show (`make soak`); tests/reliability runs the same in small."""
