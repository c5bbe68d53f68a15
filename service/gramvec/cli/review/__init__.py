"""The command `gramvec review`: pairs of rows, and labels of texts."""
