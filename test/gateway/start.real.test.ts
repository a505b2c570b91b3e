import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { openPostgres } from '../../core/storage/database';
import { quiet } from '../support/databases';
import { failToStart } from '../support/gateway';
import { bareDatabase, builtServer } from '../support/shared';

const run = promisify(execFile);

describe('A start', () => {
  const upstreams = { acme: { url: 'http://127.0.0.1:9' } };
  const missing = [
    ['Redis', { REDIS_URL: 'redis://:secret@127.0.0.1:1' }],
    ['Postgres', { DATABASE_URL: 'postgres://me:secret@127.0.0.1:1/tollgate' }],
  ] as const;
  for (const [name, env] of missing) {
    it(`fails with exit code 78 if the configured ${name} is unreachable, and names its address, but not its password`, async () => {
      const { code, output } = await failToStart({ upstreams, stores: 'real', env });
      expect(code, output).to.equal(78);
      expect(output).to.match(/127\.0\.0\.1:1/);
      expect(output).not.to.include('secret');
      expect(output).not.to.match(/^\s+at /m);
    });
  }

  describe('with --migrate', () => {
    const migrate = async (databaseUrl: string) => {
      const env = {
        PATH: process.env['PATH'],
        WORKERS: '2',
        TOLLGATE_CONFIG_DIR: '/nowhere',
        DATABASE_URL: databaseUrl,
      };
      return run(process.execPath, [await builtServer(), '--migrate'], { env });
    };

    it('migrates an empty database to this version without configuration or Redis, and changes nothing the second time', async () => {
      const databaseUrl = await bareDatabase();
      const database = openPostgres(databaseUrl, { log: quiet });
      try {
        const migrations: unknown[] = [];
        for (let time = 1; time <= 2; time += 1) {
          expect((await migrate(databaseUrl)).stdout).to.equal('The database is of this version.\n');
          migrations.push(await database('knex_migrations').orderBy('id'));
        }
        expect(migrations[0]).not.to.have.length(0);
        expect(migrations[1]).to.deep.equal(migrations[0]);
        expect(await database('accounts')).to.deep.equal([]);
      } finally {
        await database.destroy();
      }
    });

    it('fails with exit code 78 if the configured Postgres is unreachable', async () => {
      const error = await migrate('postgres://me:secret@127.0.0.1:1/tollgate').catch((failure) => failure);
      expect(error.code).to.equal(78);
      expect(error.stderr).to.match(/127\.0\.0\.1:1/);
      expect(error.stderr).not.to.include('secret');
    });
  });
});
