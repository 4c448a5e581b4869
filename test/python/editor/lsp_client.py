"""Speaks the language server protocol with neuroshard-lsp-server."""

import json
import subprocess

ERROR, INFORMATION = 1, 3  # DiagnosticSeverity; remarks are information


class LspClient:
    """A server with one document; use it as a context manager."""

    def __init__(self, server, *options):
        self._process = subprocess.Popen([server, "--log=error", *options], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._count = 0

    def __enter__(self):
        self.initialized = self.request("initialize", {"processId": None, "capabilities": {}, "rootUri": None})
        self.notify("initialized", {})
        return self

    def __exit__(self, *exception):
        if self._process.poll() is None and exception[0] is None:
            self.request("shutdown", None)
            self.notify("exit", None)
        else:
            self._process.kill()
        self._process.communicate()

    def _send(self, message):
        self.send_text(json.dumps({"jsonrpc": "2.0", **message}))

    def send_text(self, text):
        """A message, whatever is in it."""
        text = text.encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(text) + text)
        self._process.stdin.flush()

    def _receive(self):
        length = None
        while (line := self._process.stdout.readline().strip()):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        if length is None:
            raise EOFError(f"the server ended: {self._process.stderr.read().decode()}")
        return json.loads(self._process.stdout.read(length))

    def notify(self, method, parameters):
        self._send({"method": method, "params": parameters})

    def request(self, method, parameters, key=None):
        """The result; `key` is the request's id."""
        self._count += 1
        key = key or self._count
        self._send({"id": key, "method": method, "params": parameters})
        while (message := self._receive()).get("id") != key:
            pass
        assert "error" not in message, message
        return message["result"]

    def diagnostics_of(self, text, uri="file:///model.mlir"):
        """Opens a document; what the server says of it."""
        self.notify("textDocument/didOpen", {"textDocument": {
            "uri": uri, "languageId": "mlir", "version": 1, "text": text}})
        while (message := self._receive()).get("method") != "textDocument/publishDiagnostics":
            pass
        return message["params"]["diagnostics"]

    def hover(self, line, character, uri="file:///model.mlir"):
        """The text on a position; "" if there is none."""
        result = self.request("textDocument/hover", {
            "textDocument": {"uri": uri}, "position": {"line": line, "character": character}})
        return result["contents"]["value"] if result else ""

    def end_input(self):
        """Leaves the server without a word; its exit code."""
        self._process.stdin.close()
        return self._process.wait(timeout=60)
