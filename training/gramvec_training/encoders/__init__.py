"""Encoders: bags of rows, averages, recurrent networks, convolutions."""
