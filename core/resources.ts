/** Ends what was started. Resolves when it has ended. */
export type Stop = () => Promise<void>;

/** What a process has opened, closed in one place: the last that was opened first. */
export interface Resources {
  /** Closes the resource with all others; returns it. */
  keep<T extends { readonly stop: Stop }>(resource: T): T;
  keep<T>(resource: T, close: (resource: T) => unknown): T;
  /** Closes all. One that fails keeps none of the others open; the first failure is thrown at the end. */
  readonly close: Stop;
}

export function openResources(): Resources {
  const closings: (() => unknown)[] = [];
  return {
    keep: <T>(resource: T, close: (resource: T) => unknown = (each) => (each as { readonly stop: Stop }).stop()) => {
      closings.push(() => close(resource));
      return resource;
    },
    close: async () => {
      const failures: unknown[] = [];
      for (let close = closings.pop(); close !== undefined; close = closings.pop()) {
        try {
          await close();
        } catch (error) {
          failures.push(error);
        }
      }
      if (failures.length > 0) throw failures[0];
    },
  };
}
