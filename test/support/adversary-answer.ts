import type { Body, Ordeal } from './adversary';
import type { Bill } from './adversary-bill';
import { chatStream, messagesStream, respond, responsesAnswer, responsesStream, type Script } from './upstream';

/** Answers a call with what the vendor charges for it. */
export function answerWith({ protocol, path, body }: Ordeal, bill: Bill): Script {
  const isStream = body['stream'] === true;
  switch (protocol) {
    case 'messages':
      return messages(body, bill, isStream);
    case 'chat':
      return chat(body, bill, isStream);
    case 'responses':
      return path.endsWith('/compact') ? compacted(body, bill) : responses(body, bill, isStream);
    case 'embeddings':
      return respond({ body: { object: 'list', data: [], model: body['model'], usage: bill.usage } });
  }
}

const saidIn = (body: Body, { usage }: Bill) => ({ texts: ['ok'], model: String(body['model']), rawUsage: usage });

function messages(body: Body, bill: Bill, isStream: boolean): Script {
  const { searches } = bill;
  const usage = { ...bill.usage, ...(searches > 0 && { server_tool_use: { web_search_requests: searches } }) };
  if (isStream) return messagesStream(saidIn(body, { ...bill, usage }));
  const content = [{ type: 'text', text: 'ok' }];
  const message = { type: 'message', role: 'assistant', stop_reason: 'end_turn', content };
  return respond({ body: { id: 'x', model: body['model'], ...message, usage } });
}

function chat(body: Body, bill: Bill, isStream: boolean): Script {
  const n = Number(body['n'] ?? 1);
  const more = tierOf(bill);
  if (!isStream) {
    const completion = { object: 'chat.completion', choices: choicesOf(n) };
    return respond({ body: { id: 'x', model: body['model'], ...completion, ...more, usage: bill.usage } });
  }
  return chatStream({
    ...saidIn(body, bill),
    withUsage: true,
    edit: (events) => events.flatMap((event) => forEachChoice(event, n).map((each) => withMembers(each, more))),
  });
}

/** Makes the answer of Responses. It reports the begin and the end of each search, as the vendor does. */
function responses(body: Body, bill: Bill, isStream: boolean): Script {
  const said = { ...saidIn(body, bill), id: `resp_${body['user']}`, searches: bill.searches };
  const tier = tierOf(bill);
  if (!isStream) return responsesAnswer({ ...said, response: tier });
  return responsesStream({ ...said, response: tier });
}

function compacted(body: Body, bill: Bill): Script {
  const output = [{ type: 'compaction', id: 'cmp_1', encrypted_content: 'gAAAA' }];
  const compaction = { id: `resp_${body['user']}`, object: 'response.compaction', created_at: 1, output };
  return respond({ body: { ...compaction, model: body['model'], ...tierOf(bill), usage: bill.usage } });
}

function tierOf({ tier }: Bill): object {
  return tier === undefined ? {} : { service_tier: tier };
}

function choicesOf(n: number): readonly object[] {
  const message = { role: 'assistant', content: 'ok' };
  return Array.from({ length: n }, (_, index) => ({ index, message, finish_reason: 'stop' }));
}

/** Repeats the event for each choice, except for the one with the usage and the last. */
function forEachChoice(event: string, n: number): readonly string[] {
  if (!event.includes('"choices":[{')) return [event];
  return Array.from({ length: n }, (_, index) => event.replace('"index":0', `"index":${index}`));
}

function withMembers(event: string, more: object): string {
  if (!event.startsWith('data: {')) return event;
  return `data: ${JSON.stringify({ ...JSON.parse(event.slice(6)), ...more })}\n\n`;
}
