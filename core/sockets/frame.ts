import { createHash, type Hash } from 'node:crypto';
import { setImmediate as othersRun } from 'node:timers/promises';
import { fail, type GatewayError, invalidParam } from '../base/errors';
import type { BodyEdit } from '../catalog/upstream';
import { TopLevelMembers } from '../http/json-members';
import { JsonError, JsonScanner } from '../http/json-scanner';
import { applyBodyEdits, type EditedBody } from '../wire/body-edits';

const CREATE = 'response.create';

/** The changes that turn a frame into the body of a POST: members to drop or set. Every other byte stays as it is. */
const AS_BODY: readonly BodyEdit[] = [
  { member: 'type', drop: true },
  { member: 'event_id', drop: true },
  { member: 'stream', set: 'true' },
];
const ONCE = new Set(AS_BODY.map(({ member }) => member));

/** How many bytes of a frame are read in one step. Between steps other calls are served, as with HTTP bodies. */
const BYTES_PER_TURN = 524_288;

/** The identity of a frame: the id that the client gave it, or the hash of its bytes. */
export interface FrameIdentity {
  readonly eventId: string | undefined;
  /** SHA-256 of the frame. */
  readonly hash: string;
}

export interface ReadFrame {
  /** The body of the call that the frame asks for. */
  readonly body: EditedBody;
  readonly identity: FrameIdentity;
}

/** Reads a frame that begins a call. @throws INVALID_JSON, INVALID_FIELD */
export async function readFrame(frame: Buffer): Promise<ReadFrame> {
  const digest = createHash('sha256');
  const { places } = await membersOf(frame, digest);
  const textOf = (name: string) => {
    const place = places.get(name);
    return place && shortText(frame.subarray(place.valueStart, place.end));
  };
  if (textOf('type') !== CREATE) throw otherType();
  const eventId = textOf('event_id');
  if (places.has('event_id') && eventId === undefined)
    throw invalidParam('event_id', `expected a string of less than ${SHORT_TEXT_BYTES} bytes`);
  const body = applyBodyEdits({ chunks: [frame], byteLength: frame.length, members: places }, AS_BODY);
  return { body, identity: { eventId, hash: digest.digest('base64url') } };
}

async function membersOf(frame: Buffer, digest: Hash): Promise<TopLevelMembers> {
  const members = new TopLevelMembers(ONCE);
  const scanner = new JsonScanner(members);
  try {
    for (let at = 0; at < frame.length; at += BYTES_PER_TURN) {
      if (at > 0) await othersRun();
      const piece = frame.subarray(at, at + BYTES_PER_TURN);
      scanner.feed(piece);
      digest.update(piece);
    }
    scanner.finish();
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw fail('INVALID_JSON', { message: `The frame is not valid JSON: ${error.message}.`, cause: error });
  }
  if (!members.isObject) throw fail('INVALID_FIELD', { message: 'The frame is not a JSON object.' });
  if (members.repeated !== undefined)
    throw invalidParam(members.repeated, 'the frame contains this member more than once');
  return members;
}

const SHORT_TEXT_BYTES = 512;

/** Returns the text of a JSON value if it is a short string; undefined otherwise. */
function shortText(json: Buffer): string | undefined {
  const value: unknown = json.length < SHORT_TEXT_BYTES ? JSON.parse(json.toString('utf8')) : undefined;
  return typeof value === 'string' ? value : undefined;
}

function otherType(): GatewayError {
  return invalidParam('type', `expected ${CREATE}. To cancel a response, close the WebSocket.`);
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
