// Pages from disk may start no worker, which the search runs in: there a hidden frame stands for it.
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.append(frame);
      this.scope = frame.contentWindow;
      this.scope.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = this.scope.document.createElement("script");
      script.src = url;
      script.onload = () => {
        this.waiting.forEach(data => this.tell(data));
        this.waiting = null;
      };
      this.scope.document.body.append(script);
    }
    postMessage(data) {
      this.waiting ? this.waiting.push(data) : this.tell(data);
    }
    tell(data) {
      setTimeout(() => this.scope.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.scope.frameElement.remove();
    }
  };
