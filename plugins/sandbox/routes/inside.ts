import type { Route } from '../../../core/plugin';
import type { InsideService } from '../inside';
import { downloadFile } from './download-file';
import { listFiles } from './list-files';
import { openPort } from './open-port';
import { proxyPort } from './proxy-port';
import { readCommand } from './read-command';
import { readFile } from './read-file';
import { readLogs } from './read-logs';
import { removeFile } from './remove-file';
import { revokePort } from './revoke-port';
import { runCommand } from './run-command';
import { signalCommand } from './signal-command';
import { uploadFile } from './upload-file';
import { writeFile } from './write-file';

/** What is done inside a running sandbox. */
export function insideRoutes(inside: InsideService): readonly Route[] {
  return [
    runCommand(inside),
    readCommand(inside),
    readLogs(inside),
    signalCommand(inside),
    writeFile(inside),
    readFile(inside),
    removeFile(inside),
    listFiles(inside),
    uploadFile(inside),
    downloadFile(inside),
    openPort(inside),
    revokePort(inside),
    proxyPort(inside),
  ];
}
