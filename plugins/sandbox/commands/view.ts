import { textOf } from './kept-output';
import type { Command } from './store';

/** A command as callers see it; contract section 8.1. */
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
