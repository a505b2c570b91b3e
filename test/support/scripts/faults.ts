import { orClosed, pause, type Script, untilClosed, write } from './script';

/** Takes the request and stays silent until the client leaves. */
export function neverAnswer(): Script {
  return { answer: ({ closed }) => untilClosed(closed) };
}

export function resetBeforeHeaders(): Script {
  return {
    answer: (exchange) => {
      exchange.breaking();
      exchange.response.socket?.resetAndDestroy();
    },
  };
}

/** Closes the connection in an orderly way, without any answer. */
export function closeBeforeHeaders(): Script {
  return {
    answer: (exchange) => {
      exchange.breaking();
      exchange.response.socket?.end();
    },
  };
}

/** Begins to refuse and never comes to the end of it. */
export function stallRefusing(status: number): Script {
  return {
    answer: async (exchange) => {
      exchange.response.writeHead(status, { 'content-type': 'application/json' });
      await write(exchange, '{"error":');
      await untilClosed(exchange.closed);
    },
  };
}

/** Sends these bytes in place of an HTTP answer and closes. */
export function rawBytes(bytes: string | Buffer): Script {
  return {
    answer: (exchange) => {
      exchange.breaking();
      exchange.response.socket?.end(bytes);
    },
  };
}

/** Does what the other script does, later. */
export function after(milliseconds: number, script: Script): Script {
  return {
    ...script,
    answer: async (exchange) => {
      await pause(milliseconds, exchange.closed);
      if (!exchange.closed.aborted) await script.answer(exchange);
    },
  };
}

/** Does what the other script does when the promise resolves. */
export function when(ready: Promise<unknown>, script: Script): Script {
  return {
    ...script,
    answer: async (exchange) => {
      await orClosed(ready, exchange.closed);
      if (!exchange.closed.aborted) await script.answer(exchange);
    },
  };
}

/** Does what the other script does without waiting for the request's body. */
export function beforeBody(script: Script): Script {
  return { ...script, early: true };
}
