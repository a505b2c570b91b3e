import { dirname } from 'node:path';

/** The folder of this package, wherever it is installed. */
export const OWN_FOLDER = dirname(require.resolve('tollgate/package.json'));
