"""
The JSON Schema of experiment files, for editors, made from the models that read them.

    python -m tests.experiment.editor_schema > harness/core/experiment/experiment.schema.json

A test compares that file with what this prints.
"""

import json
import sys

from pydantic.json_schema import GenerateJsonSchema

from harness.core.experiment.model import Experiment


class EditorSchema(GenerateJsonSchema):
    """
    No titles that repeat keys, no defaults in the units of records, no null.
    """

    def field_title_should_be_set(self, _schema):
        """
        Never: a key says it all.
        """
        return False

    def default_schema(self, schema):
        """
        Give the schema of the value alone.
        """
        return self.generate_inner(schema["schema"])

    nullable_schema = default_schema


def experiment_schema():
    """
    JSON Schema of the file.
    """
    schema = Experiment.model_json_schema(schema_generator=EditorSchema)
    schema["required"].insert(0, "schema")
    return {"$schema": "http://json-schema.org/draft-07/schema#", **schema}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(experiment_schema(), indent=2) + "\n")
