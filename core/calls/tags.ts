import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { type GatewayError, invalidParam, shorten } from '../base/errors';
import { PLAIN_ID } from './session-ids';

/** The tags that a caller gives a call, by name; docs/contract.md, section 4.2. */
export type CallTags = Readonly<Record<string, string>>;

/** The header in which a caller gives tags: `X-SVC-Tags: project=alpha,customer=4711`. */
export const TAGS_HEADER = 'x-svc-tags';

/** Describes the header in the OpenAPI document. */
export const TAGS_DESCRIPTION = 'At most four tags for records and budgets, such as `project=alpha,customer=4711`.';

export const TAG_NAME = '^[a-z][a-z0-9_]{0,31}$';

/** The most tags that a caller may give a call. */
export const MAX_TAGS = 4;

/** The names of the tags that the gateway itself gives a call. Callers cannot give them. */
export const GATEWAY_TAGS = ['agent', 'end_user', 'session'] as const;
type GatewayTag = (typeof GATEWAY_TAGS)[number];

/** The values of the tags that the gateway itself gives a call. */
export type CallIds = Readonly<Record<GatewayTag, string | undefined>>;

const NAME = new RegExp(TAG_NAME);
const NAME_EXPECTED = 'a lower-case letter, then at most 31 lower-case letters, digits and _';
const MAX_SHOWN_LENGTH = 40;

/** Returns the tags that a request's header gives; undefined without the header. @throws INVALID_FIELD */
export function tagsInHead(headers: IncomingHttpHeaders): CallTags | undefined {
  const text = headers[TAGS_HEADER];
  if (text === undefined) return undefined;
  // Node reads the bytes of a header as Latin-1, but clients send UTF-8.
  return parseTags(Buffer.from(String(text), 'latin1').toString('utf8'), TAGS_HEADER);
}

/** Reads tags such as `project=alpha,customer=4711`. `param` names the header or parameter in errors. @throws INVALID_FIELD */
export function parseTags(text: string, param: string): CallTags {
  const tags: Record<string, string> = {};
  const given = text.split(',');
  if (given.length > MAX_TAGS) throw invalidParam(param, `expected at most ${MAX_TAGS} tags`);
  for (const each of given) {
    const tag = each.trim();
    const at = tag.indexOf('=');
    const shown = JSON.stringify(shorten(tag, MAX_SHOWN_LENGTH));
    if (at === -1) throw invalidParam(param, `expected tags such as project=alpha,customer=4711, found ${shown}`);
    const name = tag.slice(0, at);
    if (!NAME.test(name)) throw invalidParam(param, `${shown}: expected a name of ${NAME_EXPECTED}`);
    if (isGatewayTag(name)) throw invalidParam(param, `the gateway itself sets the tag ${name}`);
    if (Object.hasOwn(tags, name)) throw invalidParam(param, `the tag ${name} is given twice`);
    if (at === tag.length - 1) throw invalidParam(param, `the tag ${name} has no value`);
    tags[name] = tagValue(tag.slice(at + 1));
  }
  return tags;
}

export function isGatewayTag(name: string): name is GatewayTag {
  return (GATEWAY_TAGS as readonly string[]).includes(name);
}

const HASH_DIGITS = 32;

/** Returns the value of a tag as records and limits have it: unchanged if it looks like an id, otherwise its hash. A hash stays unchanged. */
export function tagValue(value: string): string {
  return PLAIN_ID.test(value) ? value : `hash:${hash('sha256', value, 'hex').slice(0, HASH_DIGITS)}`;
}

/** Returns all tags of a call as `name=value`, sorted and separated by spaces; undefined without tags. */
export function tagsText(tags: CallTags | undefined, ids: CallIds): string | undefined {
  const all: string[] = [];
  for (const name of GATEWAY_TAGS) if (ids[name] !== undefined) all.push(`${name}=${ids[name]}`);
  for (const name in tags) all.push(`${name}=${tags[name]}`);
  return all.length === 0 ? undefined : all.sort().join(' ');
}

/** Returns the error for a call that lacks a tag which its key or its team requires; undefined if it has all. `tags` is as of `tagsText`. */
export function missingTag(
  required: readonly string[] | undefined,
  tags: string | undefined,
): GatewayError | undefined {
  const name = required?.find((each) => tags === undefined || !` ${tags}`.includes(` ${each}=`));
  if (name === undefined) return undefined;
  return invalidParam(
    TAGS_HEADER,
    `this key requires the tag ${name}; ${isGatewayTag(name) ? HOW[name] : `send it as ${name}=…`}`,
  );
}

/** How a client gives the tags that the gateway itself sets. */
const HOW: Readonly<Record<GatewayTag, string>> = {
  agent: 'send the header of your agent program that names the agent',
  end_user: 'send metadata.user_id, safety_identifier or user in the body',
  session: 'send the header x-session-id',
};
