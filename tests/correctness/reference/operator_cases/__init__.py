"""Cases of operators, by family. Each module registers its families when it is imported."""
