import { asObject } from '../base/json-values';
import { declaredFacts, type Medium, type ModelFacts } from '../catalog/facts';
import type { Protocol } from '../catalog/protocols';
import type { CostFactors } from './cost-factors';

/** What bodies may need of a model, one bit each, so that the needs of a body and what a model lacks are compared at once. */
const IMAGES = 1;
const DOCUMENTS = 2;
const AUDIO = 4;
const TOOLS = 8;
const SCHEMA = 16;

const INPUTS: readonly (readonly [number, Medium])[] = [
  [IMAGES, 'image'],
  [DOCUMENTS, 'document'],
  [AUDIO, 'audio'],
];

/** Returns what a model lacks by its facts, as bits. It lacks nothing that its facts do not deny. */
export function lacksOf(model: { readonly facts?: ModelFacts | undefined }): number {
  const { inputs, tools, structuredOutputs } = declaredFacts(model);
  let lacks = (tools === false ? TOOLS : 0) | (structuredOutputs === false ? SCHEMA : 0);
  for (const [bit, medium] of INPUTS) if (inputs?.includes(medium) === false) lacks |= bit;
  return lacks;
}

interface NeedingRequest {
  readonly protocol: Protocol;
  readonly reading: CostFactors;
  readonly members: ReadonlyMap<string, string>;
  readonly body: { readonly members: { has(name: string): boolean } };
}

/** Returns which of the needs `of` a body has, as bits. */
export function needsOf(request: NeedingRequest, of: number): number {
  if (of === 0) return 0;
  const { images, imagesByUrl, documents, hasTools, extras } = request.reading;
  let needs = hasTools ? TOOLS : 0;
  if (images.size > 0 || imagesByUrl > 0) needs |= IMAGES;
  if (documents > 0) needs |= DOCUMENTS;
  if (extras?.some(({ meters }) => meters?.includes('audioInput')) === true) needs |= AUDIO;
  if ((of & SCHEMA) !== 0 && hasSchema(request)) needs |= SCHEMA;
  return needs & of;
}

/** Where the format of an answer is, by protocol: a member, or a member inside one. */
const FORMATS: Readonly<Record<Protocol, readonly (readonly [string, string?])[]>> = {
  messages: [['output_format'], ['output_config', 'format']],
  chat: [['response_format']],
  responses: [['text', 'format']],
  embeddings: [],
};

/** Returns whether an answer must follow a schema. A format that is too long to be read has one. */
function hasSchema({ protocol, members, body }: NeedingRequest): boolean {
  return FORMATS[protocol].some(([member, inside]) => {
    if (!body.members.has(member)) return false;
    const text = members.get(member);
    if (text === undefined) return true;
    const value = asObject(JSON.parse(text));
    const format = inside === undefined ? value : asObject(value?.[inside]);
    return format?.['type'] === 'json_schema';
  });
}
