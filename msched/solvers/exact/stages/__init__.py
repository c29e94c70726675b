"""Second stages of an exact search: figures that are made least among the plans of a makespan."""
