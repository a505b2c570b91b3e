import { migrate, openDatabase } from '../../core/storage/database';
import { quiet } from './databases';

/** Makes an embedded database of this version in the folder that the first argument names. */
async function main(dataFolder: string): Promise<void> {
  const database = await openDatabase({ dataFolder, log: quiet });
  await migrate(database);
  await database.destroy();
}

main(process.argv[2] ?? '').catch((error: unknown) => {
  process.stderr.write(`${String(error)}\n`);
  process.exit(1);
});
