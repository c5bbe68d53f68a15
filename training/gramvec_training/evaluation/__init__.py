"""Scores of models on similarity, matching, retrieval, classification and spelling; reports and cards."""
