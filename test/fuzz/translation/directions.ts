import { withOwnDialect } from '../../../core/catalog/adapters';
import type { Candidate } from '../../../core/catalog/catalog';
import { guardAdapter } from '../../../core/catalog/guarded-adapter';
import type { AnyAdapter } from '../../../core/catalog/upstream';
import type { ClientDialect } from '../../../core/protocols/client-dialect';
import { CHAT, MESSAGES, RESPONSES } from '../../../core/protocols/client-dialects';
import chat from '../../../plugins/upstreams/chat';
import gemini from '../../../plugins/upstreams/gemini';
import messages from '../../../plugins/upstreams/messages';
import responses from '../../../plugins/upstreams/responses';
import { sampleCandidate } from '../../support/catalog-samples';

export type Client = 'messages' | 'chat' | 'responses';
export type Upstream = Client | 'gemini';

export const CLIENTS: readonly Client[] = ['messages', 'chat', 'responses'];
export const UPSTREAMS: readonly Upstream[] = [...CLIENTS, 'gemini'];

export const DIALECTS: Readonly<Record<Client, ClientDialect>> = {
  messages: MESSAGES,
  chat: CHAT,
  responses: RESPONSES,
};

const ADAPTERS: Readonly<Record<Upstream, AnyAdapter>> = { messages, chat, responses, gemini };

/** The name of the upstream and of its model in every call. */
export const UPSTREAM = 'up-1';
export const MODEL = 'model-1';

export const CANDIDATES = Object.fromEntries(
  UPSTREAMS.map((upstream) => [upstream, candidateOf(upstream)]),
) as Readonly<Record<Upstream, Candidate>>;

function candidateOf(upstream: Upstream): Candidate {
  const adapter = guardAdapter(withOwnDialect(ADAPTERS[upstream]));
  const dialect = upstream === 'gemini' ? 'own' : upstream;
  return { ...sampleCandidate(UPSTREAM, { model: { name: MODEL } }), adapter, dialect };
}
