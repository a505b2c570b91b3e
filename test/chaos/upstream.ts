import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Random } from '../support/random';

export interface Upstream {
  readonly url: string;
  stop(): Promise<void>;
}

const STREAM_HEAD = { 'content-type': 'text/event-stream' };

/** The model that answers at once. The other model is slow, and sometimes very slow. */
export const QUICK = 'acme-quick';

/** Starts an upstream of the Messages protocol that answers and streams with usage of a random size. */
export async function startUpstream(random: Random): Promise<Upstream> {
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const { stream, model } = JSON.parse(Buffer.concat(pieces).toString()) as { stream?: boolean; model: string };
      const usage = { input_tokens: 1 + random.below(100), output_tokens: 1 + random.below(100) };
      const isSlow = random.below(model === QUICK ? 500 : 10) === 0;
      const after = isSlow ? random.below(1_500) : model === QUICK ? 0 : random.below(60);
      const pauseMs = model === QUICK ? 0 : 15;
      setTimeout(() => (stream === true ? answerStream(response, usage, pauseMs) : answer(response, usage)), after);
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

type Usage = { readonly input_tokens: number; readonly output_tokens: number };

const message = (usage: object, content: readonly object[]) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'acme-large',
  content,
  usage,
  stop_reason: 'end_turn',
  stop_sequence: null,
});

function answer(response: ServerResponse, usage: Usage): void {
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(message(usage, [{ type: 'text', text: 'Hello.' }])));
}

function answerStream(response: ServerResponse, { input_tokens, output_tokens }: Usage, pauseMs: number): void {
  const events: readonly (readonly [string, object])[] = [
    ['message_start', { message: { ...message({ input_tokens, output_tokens: 1 }, []), stop_reason: null } }],
    ['content_block_start', { index: 0, content_block: { type: 'text', text: '' } }],
    ...Array.from(
      { length: 5 },
      () => ['content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'Hello. ' } }] as const,
    ),
    ['content_block_stop', { index: 0 }],
    ['message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens } }],
    ['message_stop', {}],
  ];
  response.writeHead(200, STREAM_HEAD);
  const next = (at: number) => {
    const event = events[at];
    if (event === undefined || response.destroyed) return void response.end();
    response.write(`event: ${event[0]}\ndata: ${JSON.stringify({ type: event[0], ...event[1] })}\n\n`);
    setTimeout(() => next(at + 1), pauseMs);
  };
  next(0);
}
