import { orClosed, pause, type Script, untilClosed, write } from './script';

/** Accepts the request and stays silent until the client disconnects. */
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

/** Closes the connection properly, without an answer. */
export function closeBeforeHeaders(): Script {
  return {
    answer: (exchange) => {
      exchange.breaking();
      exchange.response.socket?.end();
    },
  };
}

/** Begins an error answer and never ends it. */
export function stallRefusing(status: number): Script {
  return {
    answer: async (exchange) => {
      exchange.response.writeHead(status, { 'content-type': 'application/json' });
      await write(exchange, '{"error":');
      await untilClosed(exchange.closed);
    },
  };
}

/** Sends these bytes instead of an HTTP answer, and closes. */
export function rawBytes(bytes: string | Buffer): Script {
  return {
    answer: (exchange) => {
      exchange.breaking();
      exchange.response.socket?.end(bytes);
    },
  };
}

/** Runs the other script after a delay. */
export function after(milliseconds: number, script: Script): Script {
  return {
    ...script,
    answer: async (exchange) => {
      await pause(milliseconds, exchange.closed);
      if (!exchange.closed.aborted) await script.answer(exchange);
    },
  };
}

/** Runs the other script when the promise resolves. */
export function when(ready: Promise<unknown>, script: Script): Script {
  return {
    ...script,
    answer: async (exchange) => {
      await orClosed(ready, exchange.closed);
      if (!exchange.closed.aborted) await script.answer(exchange);
    },
  };
}

/** Runs the other script without waiting for the request's body. */
export function beforeBody(script: Script): Script {
  return { ...script, early: true };
}
