"""Classification: a calibrated head over a model's vectors, stored as arrays beside the model's digest.

Fitting a head imports scikit-learn; applying one needs only numpy.
"""
