"""The room of past jobs: imported, catalogued, and asked for how far models are off."""
