import { claudeCode } from './claude-code';
import type { Client, Upstream } from './client';
import { codex } from './codex';

const TITLES = { messages: 'Messages', chat: 'Chat', responses: 'Responses' } as const;

/** Returns the client with an upstream that speaks another protocol; undefined if it is the client's own. */
export function clientAt(upstream: Upstream, client: Client): Client | undefined {
  if (client.protocol === TITLES[upstream]) return undefined;
  const command: Client['command'] = (ask) => client.command({ ...ask, isTranslated: true });
  return {
    ...client,
    id: `${client.id}-at-${upstream}`,
    title: `${client.title}, upstream ${TITLES[upstream]}`,
    upstream,
    command,
    tools: { ...client.tools, ...client.tools.translated },
    lacks: { ...client.lacks, 'web search': 'the search runs at a vendor of its own protocol' },
  };
}

/** The agents whose own protocol differs from their upstream's, as the document shows them. */
export const TRANSLATED: readonly Client[] = [
  clientAt('chat', claudeCode),
  clientAt('responses', claudeCode),
  clientAt('messages', codex),
  clientAt('chat', codex),
].filter((client) => client !== undefined);
