import { MODEL } from './gateway';

/** The ways of asking the same thing. */
export const PROTOCOLS = ['messages', 'chat', 'responses'] as const;
export type TestProtocol = (typeof PROTOCOLS)[number];

export const PATH: Readonly<Record<TestProtocol, string>> = {
  messages: '/v1/messages',
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
};

/** A small, valid request of Messages and Chat. */
export function ask(more: Record<string, unknown> = {}): Record<string, unknown> {
  return { model: MODEL, max_tokens: 200, messages: [{ role: 'user', content: 'Hello' }], ...more };
}

/** How Responses says the same; its vendor keeps nothing. */
const RESPONSES_NAMES: Readonly<Record<string, string>> = { max_tokens: 'max_output_tokens', messages: 'input' };

/** A small, valid request of a protocol. Members are given by the names that they have in Messages. */
export function askIn(protocol: TestProtocol, more: Record<string, unknown> = {}): Record<string, unknown> {
  if (protocol !== 'responses') return ask(more);
  const renamed = Object.entries(ask(more)).map(([name, value]) => [RESPONSES_NAMES[name] ?? name, value] as const);
  return { store: false, ...Object.fromEntries(renamed) };
}

/** A request for a stream that the client gets as the upstream sends it: in Chat with the usage in a chunk of its own. */
export function askAsSent(protocol: TestProtocol): Record<string, unknown> {
  return askIn(protocol, { stream: true, ...(protocol === 'chat' && { stream_options: { include_usage: true } }) });
}
