import { expect } from 'chai';
import {
  type Conversation,
  type Feature,
  NotTranslatable,
  type Part,
  type Turn,
} from '../../../core/catalog/conversation';
import type { ReasoningSetting } from '../../../core/catalog/upstream';
import { CHAT_UNSUPPORTED } from '../../../core/protocols/chat/limits';
import { CHAT, MESSAGES, RESPONSES } from '../../../core/protocols/client-dialects';
import { CONVERSE_UNSUPPORTED } from '../../../core/protocols/converse/limits';
import { writeConverseRequest as writeConverse } from '../../../core/protocols/converse/request';
import { GEMINI_UNSUPPORTED } from '../../../core/protocols/gemini/limits';
import { writeGeminiRequest } from '../../../core/protocols/gemini/request';
import type { UnsupportedFeature } from '../../../core/protocols/limits';
import { MESSAGES_UNSUPPORTED } from '../../../core/protocols/messages/limits';
import { RESPONSES_UNSUPPORTED } from '../../../core/protocols/responses/limits';
import { callOf, type Subject } from '../../support/golden';

const TARGETS: Readonly<
  Record<string, { writeRequest: Subject['writeRequest']; lacks: readonly UnsupportedFeature[] }>
> = {
  messages: { writeRequest: MESSAGES.writeRequest, lacks: MESSAGES_UNSUPPORTED },
  chat: { writeRequest: CHAT.writeRequest, lacks: CHAT_UNSUPPORTED },
  responses: { writeRequest: RESPONSES.writeRequest, lacks: RESPONSES_UNSUPPORTED },
  gemini: { writeRequest: writeGeminiRequest, lacks: GEMINI_UNSUPPORTED },
  converse: { writeRequest: writeConverse, lacks: CONVERSE_UNSUPPORTED },
};

/** Two requests: one uses a feature, the other does not. */
interface Trial {
  readonly with: Partial<Conversation>;
  readonly without?: Partial<Conversation>;
  /** How requests set how much the model reasons. Absent: by a word. */
  readonly told?: ReasoningSetting | 'not';
  /** Absent: a model without a row of its own. */
  readonly model?: string;
}

const turnOf = (...parts: readonly Part[]): Turn => ({ role: 'user', parts });
const answerOf = (...parts: readonly Part[]): Turn => ({ role: 'assistant', parts });
const text = { kind: 'text', text: 'Hello' } as const;
const asked = (...parts: readonly Part[]): Trial => ({ with: { turns: [turnOf(text, ...parts)] } });
const answered = (part: Part): Trial => ({
  with: { turns: [turnOf(text), answerOf(text, part), turnOf(text)] },
  without: { turns: [turnOf(text), answerOf(text), turnOf(text)] },
});
/** Makes a trial of two requests that differ in one part, which shows whether the difference arrives. */
const either = (one: Part, other: Part): Trial => ({ with: asked(one).with, without: asked(other).with });

const TOOLS = [{ name: 'weather', input: 'json', schema: { type: 'object' } }] as const;
const CALL = { kind: 'tool_call', id: 'c1', name: 'weather', input: '{"city":"Rome"}' } as const;
const RESULT = { kind: 'tool_result', id: 'c1', parts: [text] } as const;
const PNG = { base64: 'iVBO', mediaType: 'image/png' } as const;
const IMAGE = { kind: 'image', source: PNG } as const;
const PDF = { kind: 'document', source: { base64: 'JVBE', mediaType: 'application/pdf' }, name: 'a' } as const;
const WAV = { kind: 'audio', base64: 'UklG', format: 'wav' } as const;
const loop = (result: Part): Partial<Conversation> => ({ turns: [turnOf(text), answerOf(CALL), turnOf(result)] });
const SCHEMA = { kind: 'schema', schema: { type: 'object' } } as const;

/** The trial of each feature if `SPECIAL` has none. */
const USUAL: Readonly<Record<Feature, Trial>> = {
  tools: { with: { tools: TOOLS } },
  toolChoice: { with: { tools: TOOLS, toolChoice: 'required' }, without: { tools: TOOLS } },
  parallelTools: { with: { tools: TOOLS, parallelTools: false }, without: { tools: TOOLS } },
  outputFormat: { with: { outputFormat: SCHEMA } },
  maxTokens: { with: { maxTokens: 77 } },
  choices: { with: { choices: 2 } },
  stop: { with: { stop: ['END'] } },
  temperature: { with: { temperature: 0.5 } },
  topP: { with: { topP: 0.5 } },
  topK: { with: { topK: 5 } },
  frequencyPenalty: { with: { frequencyPenalty: 0.5 } },
  presencePenalty: { with: { presencePenalty: 0.5 } },
  seed: { with: { seed: 7 } },
  reasoning: { with: { reasoning: { effort: 'high' } } },
  verbosity: { with: { verbosity: 'low' } },
  cacheKey: { with: { cacheKey: 'key' } },
  user: { with: { user: 'person' } },
  isBegun: {
    with: { turns: [turnOf(text), answerOf(text)], isBegun: true },
    without: { turns: [turnOf(text), answerOf(text)] },
  },
  text: asked(text),
  image: asked(IMAGE),
  document: asked(PDF),
  audio: asked(WAV),
  tool_call: { ...answered(CALL), with: loop(RESULT) },
  tool_result: { with: loop(RESULT), without: { turns: [turnOf(text), answerOf(CALL), turnOf(text)] } },
  refusal: answered({ kind: 'refusal', text: 'No.' }),
  system: { with: { turns: [turnOf(text), { role: 'system', parts: [text] }, turnOf(text)] } },
};

/** The trials of the conditions (`when`) in the list of lacks, by feature and condition. */
const SPECIAL: Readonly<Record<string, Trial>> = {
  'temperature above 1': { with: { temperature: 1.5 } },
  'outputFormat JSON without a schema': { with: { outputFormat: { kind: 'json' } } },
  'outputFormat the name, the description and `strict` of a schema': {
    with: { outputFormat: { ...SCHEMA, name: 'n', description: 'd', strict: true } },
    without: { outputFormat: SCHEMA },
  },
  'toolChoice it asks for a tool, and there are none': { with: { toolChoice: 'required' } },
  'isBegun it is absent, and the last turn is one of the assistant': {
    with: { turns: [turnOf(text), answerOf(text)] },
  },
  'image of another type than JPEG, PNG, GIF and WebP': asked({
    kind: 'image',
    source: { ...PNG, mediaType: 'image/tiff' },
  }),
  'document of another type than PDF and plain text': asked({
    kind: 'document',
    source: { base64: 'YSxi', mediaType: 'text/csv' },
  }),
  'image at an address': asked({ kind: 'image', source: { url: 'https://example.com/a.png' } }),
  'document of another type than PDF, plain text, Markdown, HTML and CSV': asked({
    kind: 'document',
    source: { base64: 'UEsD', mediaType: 'application/zip' },
  }),
  'toolChoice `none`, and there are tools': { with: { tools: TOOLS, toolChoice: 'none' }, without: { tools: TOOLS } },
  'image in a turn of the assistant': answered(IMAGE),
  'document in a turn of the assistant': answered(PDF),
  'outputFormat `strict` of a schema': {
    with: { outputFormat: { ...SCHEMA, strict: true } },
    without: { outputFormat: SCHEMA },
  },
  'document at an address': asked({ kind: 'document', source: { url: 'https://example.com/a.pdf' } }),
  'document its name': either(PDF, { ...PDF, name: 'b' }),
  'image how closely it is looked at': either({ ...IMAGE, detail: 'high' }, IMAGE),
  'image at an address from which its type cannot be read': asked({
    kind: 'image',
    source: { url: 'https://example.com/a' },
  }),
  'document at an address from which its type cannot be read': asked({
    kind: 'document',
    source: { url: 'https://example.com/a' },
  }),
  'image of a type that is none of it': asked({ kind: 'image', source: { ...PNG, mediaType: 'text/plain' } }),
  'document of a type that is none of it': asked({
    kind: 'document',
    source: { base64: 'YSxi', mediaType: 'audio/wav' },
  }),
  'audio in a turn of the assistant': answered(WAV),
  'audio of another format than wav and mp3': asked({ ...WAV, format: 'flac' }),
  'tool_call its input is no JSON object of at most 256 levels with each name once': answered({
    ...CALL,
    input: '{"a":{"b":1,"\\u0062":2}}',
  }),
  'tool_result its call is not in the conversation': asked(RESULT),
  'tools two tools have one name': { with: { tools: [...TOOLS, { ...TOOLS[0], description: 'another' }] } },
  'text all of the conversation is empty': { with: { turns: [turnOf({ kind: 'text', text: '' })] } },
  'temperature another sampling than the default one, at models that have no other': {
    with: { temperature: 0.5 },
    model: 'claude-opus-5',
  },
  'topP beside a temperature, at models that take one of them': {
    with: { temperature: 0.5, topP: 0.5 },
    model: 'claude-sonnet-4-5',
  },
  'stop a text of white space alone': { with: { stop: ['\n'] } },
  'tool_result the mark that the tool failed': { with: loop({ ...RESULT, isError: true }), without: loop(RESULT) },
  'parallelTools one at a time, and there are tools': USUAL.parallelTools,
  'reasoning the request does not set how much to reason': { ...USUAL.reasoning, told: 'not' },
  'reasoning the model takes no word for how much to reason': { ...USUAL.reasoning, told: 'not' },
  'reasoning the request sets a number of reasoning tokens, and the sampling or the choice of tools forbids thinking': {
    with: { reasoning: { effort: 'high' }, temperature: 0.5 },
    without: { temperature: 0.5 },
    told: 'budget',
  },
  'stop more than 4': { with: { stop: ['1', '2', '3', '4', '5'] } },
  'stop more than 5': { with: { stop: ['1', '2', '3', '4', '5', '6'] } },
  'user longer than 256 characters': { with: { user: 'x'.repeat(257) } },
  'user longer than 64 characters': { with: { user: 'x'.repeat(65) } },
  'cacheKey longer than 64 characters': { with: { cacheKey: 'x'.repeat(65) } },
};

function isUsual({ feature, when }: UnsupportedFeature): boolean {
  return when === undefined || SPECIAL[`${feature} ${when}`] === USUAL[feature];
}

function fateOf(write: Subject['writeRequest'], feature: Feature, trial: Trial): string {
  const { told = 'effort', model } = trial;
  const more = { ...(told !== 'not' && { reasoning: told }), ...(model !== undefined && { model }) };
  const written = (conversation: Partial<Conversation>) => {
    try {
      return JSON.stringify(write(callOf({ turns: [turnOf(text)], ...conversation } as Conversation, more)));
    } catch (error) {
      if (error instanceof NotTranslatable) return error;
      throw error;
    }
  };
  const outcome = written(trial.with);
  if (outcome instanceof NotTranslatable) return outcome.what === feature ? 'refused' : `refused for ${outcome.what}`;
  return outcome === written(trial.without ?? {}) ? 'dropped' : 'carried';
}

for (const [dialect, { writeRequest: write, lacks }] of Object.entries(TARGETS)) {
  describe(`a request feature that is translated for the dialect ${dialect}`, () => {
    for (const [feature, trial] of Object.entries(USUAL) as [Feature, Trial][]) {
      const expected = lacks.find((lack) => lack.feature === feature && isUsual(lack))?.action ?? 'carried';
      it(`is ${expected}: ${feature}`, () => {
        expect(fateOf(write, feature, trial)).to.equal(expected);
      });
    }

    for (const { feature, when, action } of lacks) {
      if (when === undefined) continue;
      it(`is ${action} under this condition: ${feature}, ${when}`, () => {
        const trial = SPECIAL[`${feature} ${when}`];
        if (trial === undefined) throw new Error('there is no request that tries it');
        expect(fateOf(write, feature, trial)).to.equal(action);
      });
    }
  });
}
