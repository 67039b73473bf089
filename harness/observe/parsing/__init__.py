"""
Text to records; one module per source, and one for what comes in lines.

Every parser takes an iterable of lines as bytes (`read_units`: all bytes at once; `read_history`
and `read_ltrace`: pieces that end anywhere) and the name of the text for its messages.  It answers
with frozen records or with `ParseError`, and with nothing else, whatever the bytes are.
"""
