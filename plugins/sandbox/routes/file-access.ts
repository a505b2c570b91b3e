import type { IncomingHttpHeaders } from 'node:http';
import { type ErrorCode, fail } from '../../../core/errors';
import { type Reader, reader } from '../../../core/http/query';
import { object, shape } from '../../../core/http/shape';
import { findUnfinished, openRunning, RUNNING_ERRORS, type RunningSandbox } from '../asking/access';
import { operate } from '../asking/operate';
import type { InsideService } from '../inside';
import type { OperationType } from '../life/states';
import type { FileContent } from '../suppliers/supplier';

/** The largest file that goes as JSON; a larger one goes raw. */
export const MOST_AS_JSON = 4 * 1_048_576;

/** The largest file that is taken at once. */
export const MOST_UPLOADED = 20 * 1_048_576;

export const FILE_ERRORS: readonly ErrorCode[] = [
  ...RUNNING_ERRORS,
  'PATH_INVALID',
  'FILE_NOT_FOUND',
  'FILE_TOO_LARGE',
];

/** A file's bytes, as they are. */
export const BYTES = { type: 'string', format: 'binary' } as const;

export const WRITTEN = {
  201: { description: 'The file is written.', schema: object({ path: shape.text, byteLength: shape.integer }) },
};

interface SandboxPlace {
  readonly accountId: string;
  readonly sandboxId: string | undefined;
  /** Of the request. */
  readonly headers: IncomingHttpHeaders;
}

/** Refuses before the body is read what no body can make right. @throws SANDBOX_NOT_FOUND, SANDBOX_FINAL, NOT_SUPPORTED */
export async function requireFiles(service: InsideService, { accountId, sandboxId }: SandboxPlace): Promise<void> {
  const { offering } = await findUnfinished(service, accountId, sandboxId ?? '');
  if (!offering.capabilities.files) throw fail('NOT_SUPPORTED');
}

/** What the endpoints of files begin with. @throws NOT_SUPPORTED and what `openRunning` throws */
export async function withFiles<T>(
  service: InsideService,
  { accountId, sandboxId, headers }: SandboxPlace,
  type: OperationType,
  work: (running: RunningSandbox) => Promise<T>,
): Promise<T> {
  const running = await openRunning(service, accountId, sandboxId ?? '');
  if (!running.sandbox.offering.capabilities.files) throw fail('NOT_SUPPORTED');
  return operate(service, running, { type, headers }, () => work(running));
}

/**
 * Of a file's content as much as was said, whatever is written to the file meanwhile: more would be taken for the next
 * answer. One that has become shorter breaks off.
 */
export async function* exactly({ byteLength, content }: FileContent): AsyncGenerator<Buffer> {
  let left = byteLength;
  for await (const piece of content as AsyncIterable<Buffer>) {
    yield piece.subarray(0, left);
    left -= Math.min(left, piece.length);
    if (left === 0) return;
  }
  if (left > 0) throw fail('SUPPLIER_ERROR', { message: 'The file became shorter while it was read.' });
}

/** What a path of a file says, in OpenAPI. */
export const PATH_MEANING = "Relative to /workspace, or absolute in the sandbox's own root.";

/** The path of a query string. */
export const readPath = reader({ type: 'string', minLength: 1, description: PATH_MEANING }, (text) => {
  if (text === '') throw new RangeError('expected a path');
  return text;
});

/** One that `requiredPath` asks for. */
export const PATH: { readonly path: Reader<string> } = {
  path: Object.assign(reader(readPath.schema ?? {}, readPath), { isRequired: true as const }),
};

/** @throws PATH_INVALID */
export function requiredPath(path: string | undefined): string {
  if (path === undefined) throw fail('PATH_INVALID', { param: 'path', message: 'path: expected one' });
  return path;
}
