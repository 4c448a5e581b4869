# cmake -DINPUT=FILE -DOUTPUT=FILE -P EmbedText.cmake
# Writes a text file as a raw string literal of C++, for #include.
file(READ "${INPUT}" text)
file(WRITE "${OUTPUT}" "R\"embedded(${text})embedded\"\n")
