"""Classification: a calibrated head over vectors and n-grams of texts, stored as arrays beside the model's digest.

Fitting a head imports scikit-learn; applying one needs only numpy.
"""
