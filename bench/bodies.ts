/** Requests and answers as large and as structured as real ones. The answers report usage, so that the gateway has something to charge. */
export const MODEL = 'bench-model';
export const CHAT_PATH = '/v1/chat/completions';

const TEXT =
  'The tariff of the toll road depends on the axles of the vehicle and on the hour. A passenger car pays the lowest ' +
  'rate; a lorry with five axles pays about six times as much. Between midnight and five in the morning every rate is halved.';

const INSTRUCTIONS = 'You answer in two or three short sentences.';
const QUESTION = 'How is the price of a toll road decided, and who pays least?';

/** The path, requests and answers of one protocol. */
export interface Protocol {
  readonly path: string;
  body(model: string): string;
  /** Returns a streaming call whose last message is the script. `programs/scripted-upstream.mjs` reads the script and streams accordingly. */
  scriptedBody(script: object): string;
}

export const CHAT: Protocol = {
  path: CHAT_PATH,
  body: (model) => chatBody(model, QUESTION),
  scriptedBody: (script) =>
    JSON.stringify({
      model: MODEL,
      max_tokens: 1_024,
      stream: true,
      messages: [{ role: 'user', content: JSON.stringify(script) }],
    }),
};

function chatBody(model: string, question: string): string {
  return JSON.stringify({
    model,
    max_tokens: 256,
    temperature: 0.7,
    messages: [
      { role: 'system', content: INSTRUCTIONS },
      { role: 'user', content: question },
    ],
  });
}

export const MESSAGES: Protocol = {
  path: '/v1/messages',
  body: (model) =>
    JSON.stringify({
      model,
      max_tokens: 256,
      temperature: 0.7,
      system: INSTRUCTIONS,
      messages: [{ role: 'user', content: QUESTION }],
    }),
  scriptedBody: CHAT.scriptedBody,
};

/** Responses calls like those of Codex: they ask the vendor to store nothing. */
export const RESPONSES: Protocol = {
  path: '/v1/responses',
  body: (model) =>
    JSON.stringify({
      model,
      max_output_tokens: 256,
      temperature: 0.7,
      store: false,
      instructions: INSTRUCTIONS,
      input: [{ role: 'user', content: QUESTION }],
    }),
  scriptedBody: (script) =>
    JSON.stringify({
      model: MODEL,
      max_output_tokens: 1_024,
      stream: true,
      store: false,
      input: [{ role: 'user', content: JSON.stringify(script) }],
    }),
};

export const CHAT_BODY = CHAT.body(MODEL);

/** A body of exactly 256 bytes. */
export const BODY_OF_256 = chatBody(MODEL, QUESTION + TEXT.slice(0, 256 - CHAT_BODY.length));

export const CHAT_ANSWER = JSON.stringify({
  id: 'chatcmpl-bench',
  object: 'chat.completion',
  created: 1_790_000_000,
  model: MODEL,
  choices: [{ index: 0, message: { role: 'assistant', content: TEXT }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 38, completion_tokens: 61, total_tokens: 99, prompt_tokens_details: { cached_tokens: 0 } },
});

export const MESSAGES_ANSWER = JSON.stringify({
  id: 'msg_bench',
  type: 'message',
  role: 'assistant',
  model: MODEL,
  content: [{ type: 'text', text: TEXT }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 38, output_tokens: 61, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 },
});

export const RESPONSES_ANSWER = JSON.stringify({
  id: 'resp_bench',
  object: 'response',
  created_at: 1_790_000_000,
  status: 'completed',
  model: MODEL,
  output: [
    {
      id: 'msg_bench',
      type: 'message',
      status: 'completed',
      role: 'assistant',
      content: [{ type: 'output_text', text: TEXT, annotations: [] }],
    },
  ],
  usage: {
    input_tokens: 38,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 61,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 99,
  },
});

/** Makes a chat request with many long messages, of exactly `bytes` bytes. */
export function largeBody(bytes: number): Buffer {
  const messageBytes = 250_000;
  const body = (fill: number) =>
    JSON.stringify({
      model: MODEL,
      max_tokens: 256,
      messages: Array.from({ length: Math.ceil(fill / messageBytes) }, (_, index) => ({
        role: index % 2 === 0 ? 'user' : 'assistant',
        content: longText(Math.min(messageBytes, fill - index * messageBytes)),
      })),
    });
  const frame = body(bytes).length - bytes;
  const text = body(bytes - frame);
  return Buffer.from(text.padEnd(bytes, ' '));
}

/** Makes text that JSON must escape, such as quotes and line breaks in source code. */
function longText(characters: number): string {
  const line = `${TEXT}\n\t"${TEXT}"\n`;
  return line.repeat(Math.ceil(characters / line.length)).slice(0, Math.floor(characters * 0.98));
}
