"""Datasets: streaming pretraining data and labelled examples."""
