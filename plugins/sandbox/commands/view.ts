import { object, objectWith, oneOf, orNull, shape } from '../../../core/http/shape';
import { textOf } from './kept-output';
import type { Command } from './store';

export const COMMAND_STATUS = oneOf('RUNNING', 'EXITED', 'TIMED_OUT', 'LOST');
export const TRUNCATED = object({ stdout: shape.yes, stderr: shape.yes });

/** The schema of what `commandView` returns. */
export const COMMAND = objectWith(
  {
    commandId: shape.uuid,
    status: COMMAND_STATUS,
    exitCode: orNull(shape.integer),
    stdout: shape.text,
    stderr: shape.text,
    truncated: TRUNCATED,
    startedAt: shape.time,
    endedAt: orNull(shape.time),
    durationMs: orNull(shape.integer),
  },
  { background: object({ sessionId: shape.uuid, commandId: shape.uuid }) },
);

/** Returns a command as callers see it; docs/contract.md, section 8.1. */
export function commandView(command: Command, output: { readonly stdout: string; readonly stderr: string }) {
  const { id, operationId, startedAtMs, endedAtMs } = command;
  return {
    commandId: id,
    status: command.status,
    exitCode: command.exitCode,
    ...output,
    truncated: { stdout: command.stdoutTruncated, stderr: command.stderrTruncated },
    startedAt: new Date(startedAtMs).toISOString(),
    endedAt: endedAtMs === null ? null : new Date(endedAtMs).toISOString(),
    durationMs: endedAtMs === null ? null : endedAtMs - startedAtMs,
    ...(command.background ? { background: { sessionId: operationId, commandId: id } } : {}),
  };
}

export function outputView(pieces: Parameters<typeof textOf>[0]): { stdout: string; stderr: string } {
  return { stdout: textOf(pieces, 'stdout'), stderr: textOf(pieces, 'stderr') };
}
