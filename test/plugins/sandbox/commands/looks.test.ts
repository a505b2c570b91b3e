import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { Looks } from '../../../../plugins/sandbox/commands/events';
import { DATABASES } from '../../../support/databases';
import { rejection } from '../../../support/rejection';

describe('database reads for the followers of a command', () => {
  it('are shared by all followers at the same position, until there is new output', async function () {
    this.timeout(60_000);
    const opened = await DATABASES.find(({ name }) => name === 'Postgres')?.open();
    if (opened === undefined) throw new Error('there is no Postgres');
    const { database, close } = opened;
    let queries = 0;
    database.on('query', () => (queries += 1));
    const looks = new Looks(database, () => 60_000);
    const id = randomUUID();
    const lookFifty = () => Promise.all(Array.from({ length: 50 }, () => rejection(looks.look(id, id, 7))));
    await lookFifty();
    expect(queries).to.equal(1);
    const before = lookFifty();
    looks.notify(id);
    await Promise.all([before, lookFifty()]);
    expect(queries).to.equal(3);
    await close();
  });

  it('start again for all waiting followers when there is new output', async () => {
    const looks = new Looks(undefined as never, () => 60_000);
    const waiting = Array.from({ length: 1_000 }, () => looks.change('one'));
    expect(new Set(waiting).size).to.equal(1);
    looks.notify('one');
    await Promise.all(waiting);
    expect(looks.change('one')).to.not.equal(waiting[0]);
  });
});
