import { listOf, orNull } from '../../core/http/shape';

/** The bodies of model calls; docs/contract.md, section 4.1. The gateway forwards other fields too. */

const CONTENT = {
  description: 'Text, or parts: text, images and what else the upstream takes.',
  anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'object' } }],
};

const COMMON = {
  model: { type: 'string', description: 'Any name of a model that the gateway serves.' },
  stream: { type: 'boolean', default: false, description: 'Answer with server-sent events.' },
  tools: listOf({ type: 'object' }),
};

export const MESSAGES_REQUEST = {
  type: 'object',
  required: ['model', 'max_tokens', 'messages'],
  additionalProperties: true,
  properties: {
    ...COMMON,
    max_tokens: {
      type: 'integer',
      minimum: 0,
      description: "The most tokens to generate; 0 only fills the vendor's cache.",
    },
    messages: listOf({
      type: 'object',
      required: ['role', 'content'],
      additionalProperties: true,
      properties: { role: { type: 'string', enum: ['user', 'assistant', 'system'] }, content: CONTENT },
    }),
    system: { ...CONTENT, description: 'The system prompt.' },
    temperature: { type: 'number', minimum: 0, maximum: 1, default: 1 },
    tool_choice: { type: 'object' },
  },
  example: { model: 'demo-model', max_tokens: 200, messages: [{ role: 'user', content: 'Hello' }] },
};

const TOKENS = listOf({ type: 'integer', minimum: 0 });

export const EMBEDDINGS_REQUEST = {
  type: 'object',
  required: ['model', 'input'],
  additionalProperties: true,
  properties: {
    model: COMMON.model,
    input: {
      description: 'A text, a list of texts, the tokens of one text, or a list of such lists; at most 2,048 inputs.',
      anyOf: [{ type: 'string', minLength: 1 }, listOf({ type: 'string', minLength: 1 }), TOKENS, listOf(TOKENS)],
    },
    encoding_format: { type: 'string', enum: ['float', 'base64'], default: 'float' },
    dimensions: { type: 'integer', minimum: 1 },
    user: { type: 'string' },
  },
  example: { model: 'demo-embedding', input: ['Hello', 'Good morning'] },
};

export const CHAT_REQUEST = {
  type: 'object',
  required: ['model', 'messages'],
  additionalProperties: true,
  properties: {
    ...COMMON,
    messages: listOf({
      type: 'object',
      required: ['role'],
      additionalProperties: true,
      properties: { role: { type: 'string' }, content: { ...CONTENT, anyOf: CONTENT.anyOf.map(orNull) } },
    }),
    max_tokens: { type: 'integer', minimum: 1, nullable: true },
    max_completion_tokens: { type: 'integer', minimum: 1, nullable: true },
    temperature: { type: 'number', minimum: 0, maximum: 2, default: 1, nullable: true },
  },
  example: { model: 'demo-model', messages: [{ role: 'user', content: 'Hello' }] },
};

export const RESPONSES_REQUEST = {
  type: 'object',
  required: ['model'],
  additionalProperties: true,
  properties: {
    ...COMMON,
    input: { ...CONTENT, description: 'Text, or items: messages, calls of tools and their outputs, reasoning.' },
    instructions: { type: 'string', nullable: true, description: 'The system prompt.' },
    max_output_tokens: { type: 'integer', minimum: 1, nullable: true },
    temperature: { type: 'number', minimum: 0, maximum: 2, default: 1, nullable: true },
  },
  example: { model: 'demo-model', input: 'Hello' },
};
