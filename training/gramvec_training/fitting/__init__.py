"""The training loop, its optimizers, and the closed form of SIF."""
