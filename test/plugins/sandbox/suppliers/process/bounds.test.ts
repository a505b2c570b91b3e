import { strict as assert } from 'node:assert';
import {
  boundsOf,
  joinWords,
  limitWords,
  readControlGroups,
} from '../../../../../plugins/sandbox/suppliers/process/bounds';

const VERSION_1 = `
24 23 0:5 / /sys rw - sysfs sysfs rw
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids`;

describe('the control groups of instances of the process driver', () => {
  it("are below the process's own group of each controller with version 1", () => {
    const own = '9:name=systemd:/\n8:pids:/user\n4:memory:/user/gateway\n1:cpu,cpuacct:/';
    assert.deepEqual(readControlGroups(VERSION_1, own), {
      version: 1,
      folders: ['/sys/fs/cgroup/memory/user/gateway', '/sys/fs/cgroup/pids/user', '/sys/fs/cgroup/cpu,cpuacct'],
    });
  });

  it("are below the process's single group with version 2", () => {
    const mounts = '35 31 0:32 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw';
    const found = readControlGroups(mounts, '0::/system.slice/tollgate.service');
    assert.deepEqual(found, { version: 2, folders: ['/sys/fs/cgroup/system.slice/tollgate.service'] });
  });

  it('are below the group that systemd delegates, beside the one that the process is in', () => {
    const mounts = '35 31 0:32 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw';
    const found = readControlGroups(mounts, '0::/system.slice/tollgate.service/gateway');
    assert.deepEqual(found?.folders, ['/sys/fs/cgroup/system.slice/tollgate.service']);
  });

  it('are below the root that a container sees', () => {
    const mounts = '35 31 0:32 /docker/abc /sys/fs/cgroup rw,relatime - cgroup2 cgroup rw';
    assert.deepEqual(readControlGroups(mounts, '0::/docker/abc')?.folders, ['/sys/fs/cgroup']);
    assert.deepEqual(readControlGroups(mounts, '0::/docker/abc/below')?.folders, ['/sys/fs/cgroup/below']);
  });

  it('are missing if a controller is missing', () => {
    assert.equal(readControlGroups('24 23 0:5 / /sys rw - sysfs sysfs rw', '4:memory:/'), undefined);
    assert.equal(readControlGroups(VERSION_1.split('\n').slice(0, 4).join('\n'), '4:memory:/'), undefined);
  });

  it('have the limits of the offering, without swap', () => {
    const size = { cpu: 0.5, memoryGiB: 2 };
    assert.deepEqual(boundsOf(2, size), {
      must: { 'memory.max': '2147483648', 'pids.max': '256' },
      may: { 'memory.swap.max': '0', 'cpu.max': '50000 100000' },
    });
    assert.deepEqual(boundsOf(1, size), {
      must: { 'memory.limit_in_bytes': '2147483648', 'pids.max': '256' },
      may: {
        'memory.memsw.limit_in_bytes': '2147483648',
        'cpu.cfs_period_us': '100000',
        'cpu.cfs_quota_us': '50000',
      },
    });
  });

  it('receive a program before it starts, and the program runs without groups if there are none', () => {
    assert.deepEqual(joinWords([]), []);
    assert.deepEqual(joinWords(['/groups/a', '/groups/b']).slice(3), ['sh', '/groups/a', '/groups/b', '--']);
    assert.deepEqual(limitWords({ cpu: 1, memoryGiB: 1 }), [
      'prlimit',
      '--nproc=256',
      '--data=1073741824',
      '--core=0',
      '--',
    ]);
  });
});
