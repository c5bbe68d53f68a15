"""Classify texts with scikit-learn.

`pip install scikit-learn`. The transformer learns nothing, so a search over its settings or a
classifier's is quick.

The pipeline can be cloned, pickled (the model by its name) and searched with `n_jobs`. In a ColumnTransformer the
transformer takes one column, by its name and not by a list of names.
"""

from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from gramvec.integrations import TextEmbedder

texts = ["forgot my pasword", "cannot log in", "reset my login", "acount locked", "no login", "new password"]
texts += ["where is my parcel", "order not arrived", "track my order", "late delivery", "parcel lost", "adress"]
labels = ["account"] * 6 + ["delivery"] * 6

pipeline = make_pipeline(TextEmbedder("gramvec-en"), LogisticRegression())
search = GridSearchCV(pipeline, {"logisticregression__C": [1, 10], "textembedder__dimensions": [100, None]}, cv=3)
search.fit(texts, labels)
print(search.predict(["pasword forgoten", "my parcell is late"]))
print(pipeline.named_steps["textembedder"].get_feature_names_out()[:2])

# Prints:
# ['account' 'delivery']
# ['gramvec0' 'gramvec1']
