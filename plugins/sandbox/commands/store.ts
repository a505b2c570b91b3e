import type { Knex } from 'knex';
import { fail } from '../../../core/base/errors';
import { existing, idIs } from '../../../core/storage/page';
import type { Limits } from '../lifecycle/settings';
import { FINAL_STATES } from '../lifecycle/states';
import { firstOf, fromRow, toRow } from '../store/rows';
import type { OutputStream, Piece } from './kept-output';

/** LOST: the outcome is unknown, because the sandbox or the engine disappeared. */
type CommandStatus = 'RUNNING' | 'EXITED' | 'TIMED_OUT' | 'LOST';

/** One row of `sandbox_commands`. */
export interface Command {
  readonly id: string;
  readonly sandboxId: string;
  readonly operationId: string;
  readonly background: boolean;
  readonly status: CommandStatus;
  readonly exitCode: number | null;
  readonly stdoutTruncated: boolean;
  readonly stderrTruncated: boolean;
  readonly startedAtMs: number;
  readonly endedAtMs: number | null;
  /** When the timeout ends the command; null if it has no timeout. */
  readonly killAtMs: number | null;
  /** The time by which the process that reads the command's output must report again. */
  readonly watchedUntilMs: number;
}

/** The Retry-After of a rejected client. A slot may become free at any time, but clients must not retry without pause. */
const RETRY_AFTER_SECONDS = 5;

export function tooMany(message: string) {
  return fail('COMMAND_LIMIT', { message, retryAfterSeconds: RETRY_AFTER_SECONDS });
}

/** Writes a command that is about to start. @throws COMMAND_LIMIT if the maximum number of commands is running */
export async function insertWithin(
  database: Knex,
  command: Command,
  accountId: string,
  { commandsPerSandbox, commandsPerAccount }: Limits,
): Promise<void> {
  await database.transaction(async (transaction) => {
    // Lock the account's row, so that concurrent starts of one account count its running commands one after the other.
    await transaction('accounts').where({ id: accountId }).forUpdate().select('id');
    const running = await countRunning(transaction, accountId, command.sandboxId);
    if (running.sandbox >= commandsPerSandbox)
      throw tooMany(`${running.sandbox} commands are running in this sandbox. Wait until one ends.`);
    if (running.account >= commandsPerAccount)
      throw tooMany(`${running.account} commands of this account are running. Wait until one ends.`);
    await transaction('sandbox_commands').insert(toRow(command));
  });
}

async function countRunning(database: Knex, accountId: string, sandboxId: string) {
  const rows: { sandbox_id: string }[] = await database('sandbox_commands')
    .join('sandboxes', 'sandboxes.id', 'sandbox_commands.sandbox_id')
    .where({ 'sandbox_commands.status': 'RUNNING', 'sandboxes.account_id': accountId })
    .select('sandbox_commands.sandbox_id');
  return { account: rows.length, sandbox: rows.filter((row) => row.sandbox_id === sandboxId).length };
}

export async function removeCommand(database: Knex, id: string): Promise<void> {
  await database('sandbox_commands').where({ id }).delete();
}

/** Marks a command for killing, because it is unknown whether it was started. */
export async function abandonCommand(database: Knex, id: string, nowMs: number): Promise<void> {
  await database('sandbox_commands')
    .where({ id })
    .update(toRow({ killAtMs: nowMs, watchedUntilMs: nowMs }));
}

/** Returns a command. @throws NOT_FOUND */
export async function findCommand(database: Knex, sandboxId: string, id: string): Promise<Command> {
  const found = database('sandbox_commands').where({ ...idIs(id), sandbox_id: sandboxId });
  return existing(await firstOf<Command>(found), 'command');
}

/** Writes new pieces of output, and deletes the pieces before the oldest kept piece of each stream. */
export async function writeOutput(
  database: Knex,
  commandId: string,
  added: readonly Piece[],
  oldest: Readonly<Record<OutputStream, number>>,
): Promise<void> {
  if (added.length === 0) return;
  await database('sandbox_command_output').insert(
    added.map(({ sequence, stream, bytes }) => ({ command_id: commandId, sequence, stream, bytes })),
  );
  for (const stream of ['stdout', 'stderr'] as const) {
    await database('sandbox_command_output')
      .where({ command_id: commandId, stream })
      .where('sequence', '<', oldest[stream])
      .delete();
  }
}

/** Reads a command's output pieces after a sequence number, in order. Returns the pieces that begin within the first `maxBytes` bytes. */
export async function readOutput(
  database: Knex,
  commandId: string,
  after: number,
  maxBytes = Number.MAX_SAFE_INTEGER,
): Promise<readonly Piece[]> {
  const before = 'sum(octet_length(bytes)) OVER (ORDER BY sequence) - octet_length(bytes) AS before';
  const pieces = database('sandbox_command_output')
    .where({ command_id: commandId })
    .where('sequence', '>', after)
    .select('sequence', 'stream', 'bytes', database.raw(before));
  const rows: { sequence: number; stream: OutputStream; bytes: Uint8Array }[] = await database
    .from(pieces.as('pieces'))
    .where('before', '<', maxBytes)
    .orderBy('sequence')
    .select('sequence', 'stream', 'bytes');
  return rows.map(({ sequence, stream, bytes }) => ({ sequence, stream, bytes: Buffer.from(bytes) }));
}

type CommandEnding = Pick<Command, 'status' | 'exitCode'> &
  Partial<Pick<Command, 'stdoutTruncated' | 'stderrTruncated'>>;

/** Records the end of a command. Returns false if it had already ended. */
export async function endCommand(database: Knex, id: string, ending: CommandEnding, nowMs: number): Promise<boolean> {
  const changed = await database('sandbox_commands')
    .where({ id, status: 'RUNNING' })
    .update(toRow({ ...ending, endedAtMs: nowMs }));
  return changed > 0;
}

/** Records until when this process promises to read the output of these commands. */
export async function watchCommands(database: Knex, ids: readonly string[], untilMs: number): Promise<void> {
  if (ids.length === 0) return;
  await database('sandbox_commands')
    .whereIn('id', ids)
    .update({ watched_until: new Date(untilMs) });
}

/** Returns running commands whose process has stopped, in sandboxes that have ended or that this node reaches. */
export async function findUnwatched(
  database: Knex,
  places: readonly string[],
  nowMs: number,
): Promise<readonly Command[]> {
  const rows: Record<string, unknown>[] = await database('sandbox_commands as command')
    .join('sandboxes as sandbox', 'sandbox.id', 'command.sandbox_id')
    .where({ 'command.status': 'RUNNING' })
    .where('command.watched_until', '<=', new Date(nowMs))
    .where((reached) =>
      reached
        .whereNull('sandbox.place')
        .orWhereIn('sandbox.place', places)
        .orWhereIn('sandbox.observed_state', FINAL_STATES),
    )
    .orderBy('command.watched_until')
    .limit(100)
    .select('command.*');
  return rows.map((row) => fromRow<Command>(row));
}

/** Deletes the output of commands that ended before this time. */
export async function forgetOutput(database: Knex, beforeMs: number): Promise<void> {
  // Start the query from the table of output, because many commands have ended and few still have output.
  await database.raw(
    `DELETE FROM sandbox_command_output WHERE command_id IN (
       SELECT command.id FROM (SELECT DISTINCT command_id FROM sandbox_command_output) AS output
       JOIN sandbox_commands AS command ON command.id = output.command_id WHERE command.ended_at < ?)`,
    [new Date(beforeMs)],
  );
}
