import { expect } from 'chai';
import { placeOf } from '../../../../../plugins/sandbox/suppliers/process/place';
import { newDataFolder } from '../../../../support/data-folder';

describe('the place of the process driver, which names a data folder', () => {
  it('is the same for all processes that open a data folder, at the same time or later', async () => {
    const folder = `${await newDataFolder()}/suppliers/local`;
    const places = await Promise.all(Array.from({ length: 20 }, () => placeOf(folder)));
    expect(new Set([...places, await placeOf(folder)]).size).to.equal(1);
  });

  it('is different for every data folder', async () => {
    expect(await placeOf(await newDataFolder())).not.to.equal(await placeOf(await newDataFolder()));
  });
});
