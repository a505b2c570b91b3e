import { MODEL } from './gateway';

/** The two ways of asking the same thing. */
export const PROTOCOLS = ['messages', 'chat'] as const;
export type TestProtocol = (typeof PROTOCOLS)[number];

export const PATH: Readonly<Record<TestProtocol, string>> = { messages: '/v1/messages', chat: '/v1/chat/completions' };

/** A small, valid request of either protocol. */
export function ask(more: Record<string, unknown> = {}): Record<string, unknown> {
  return { model: MODEL, max_tokens: 200, messages: [{ role: 'user', content: 'Hello' }], ...more };
}

/** A request for a stream that the client gets as the upstream sends it: in Chat with the usage in a chunk of its own. */
export function askAsSent(protocol: TestProtocol): Record<string, unknown> {
  return ask({ stream: true, ...(protocol === 'chat' && { stream_options: { include_usage: true } }) });
}
