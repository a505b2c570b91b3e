import { setImmediate as othersRun } from 'node:timers/promises';
import type { BodyEdit } from '../catalog/upstream';
import { fail, type GatewayError } from '../errors';
import { TopLevelMembers } from '../http/json-members';
import { JsonError, JsonScanner } from '../http/json-scanner';
import { applyBodyEdits, type EditedBody } from '../wire/body-edits';

const CREATE = 'response.create';

/** The edits that turn a frame into the body of a POST. Every other byte stays as it is. */
const AS_BODY: readonly BodyEdit[] = [
  { member: 'type', drop: true },
  { member: 'stream', set: 'true' },
];
const ONCE = new Set(AS_BODY.map(({ member }) => member));

/** How many bytes of a frame are read before other calls have their turn, as for bodies. */
const BYTES_PER_TURN = 524_288;

/**
 * Returns the body of the call that a frame asks for.
 * @throws INVALID_JSON, INVALID_FIELD
 */
export async function bodyOf(frame: Buffer): Promise<EditedBody> {
  const { places } = await membersOf(frame);
  const type = places.get('type');
  const isCreate = type !== undefined && isText(frame.subarray(type.valueStart, type.end), CREATE);
  if (!isCreate) throw otherType();
  return applyBodyEdits({ chunks: [frame], byteLength: frame.length, members: places }, AS_BODY);
}

async function membersOf(frame: Buffer): Promise<TopLevelMembers> {
  const members = new TopLevelMembers(ONCE);
  const scanner = new JsonScanner(members);
  try {
    for (let at = 0; at < frame.length; at += BYTES_PER_TURN) {
      if (at > 0) await othersRun();
      scanner.feed(frame.subarray(at, at + BYTES_PER_TURN));
    }
    scanner.finish();
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw fail('INVALID_JSON', { message: `The frame is not valid JSON: ${error.message}.`, cause: error });
  }
  if (!members.isObject) throw fail('INVALID_FIELD', { message: 'The frame is not a JSON object.' });
  if (members.repeated !== undefined)
    throw fail('INVALID_FIELD', {
      param: members.repeated,
      message: `${members.repeated}: the frame contains this member more than once`,
    });
  return members;
}

function isText(json: Buffer, text: string): boolean {
  return json.length < 100 && JSON.parse(json.toString('utf8')) === text;
}

function otherType(): GatewayError {
  return fail('INVALID_FIELD', {
    param: 'type',
    message: `type: expected ${CREATE}. To cancel a response, close the WebSocket.`,
  });
}

const TYPE_FIRST = /^\s*\{\s*"type"\s*:\s*"([^"\\]{0,100})"/;
const LOOKED_AT_BYTES = 256;

/** Returns why a frame is rejected while a response is under way. It reads only the first bytes of the frame. */
export function meanwhile(frame: Buffer): GatewayError {
  const type = TYPE_FIRST.exec(frame.toString('latin1', 0, LOOKED_AT_BYTES))?.[1];
  if (type !== undefined && type !== CREATE) return otherType();
  return fail('CONFLICT', {
    message: 'A response is still running on this WebSocket. Send the next response.create after its last event.',
    retryable: true,
  });
}
