import { type Conversation, type Feature, NotTranslatable, type Part } from '../catalog/conversation';
import { PROTOCOLS, type Protocol } from '../catalog/protocols';

/**
 * The most entries of a request that can be translated: turns, the parts of turns and of tool results, tools, and the items of other lists.
 * Real conversations have far fewer. The gateway counts entries while the body arrives, so that it never parses more.
 */
const MAX_ENTRIES = 20_000;

/** The most characters of an id or a name in a translated request. Some dialects encode one character of an id as up to ten. */
export const MAX_NAME_LENGTH = 512;

/** Refuses a request with too many entries before the gateway parses it. @throws NotTranslatable */
export function refuseMany(protocol: Protocol, entries = 0): void {
  if (entries <= MAX_ENTRIES) return;
  const why = `has more than ${MAX_ENTRIES} turns, parts and tools together, and no more are translated`;
  throw new NotTranslatable(PROTOCOLS[protocol].conversation, why);
}

/** Refuses long ids and names before the gateway writes the translated request. @throws NotTranslatable that names a `Feature` */
export function refuseLong({ tools, toolChoice, outputFormat, turns }: Conversation): void {
  for (const { name } of tools) mustBeShort('tools', name);
  if (typeof toolChoice === 'object') mustBeShort('toolChoice', toolChoice.tool);
  if (outputFormat?.kind === 'schema') mustBeShort('outputFormat', outputFormat.name);
  for (const { parts } of turns) for (const part of parts) mustBeShortIn(part);
}

function mustBeShortIn(part: Part): void {
  if ('id' in part) mustBeShort(part.kind, part.id);
  if ('name' in part) mustBeShort(part.kind, part.name);
  if (part.kind === 'tool_result') part.parts.forEach(mustBeShortIn);
}

function mustBeShort(feature: Feature, name = ''): void {
  if (name.length > MAX_NAME_LENGTH)
    throw new NotTranslatable(feature, `has an id or a name of more than ${MAX_NAME_LENGTH} characters`);
}
