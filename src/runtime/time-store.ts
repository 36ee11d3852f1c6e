import type { Clock } from '../clock.ts';
import type { StoreDriver } from '../store/driver.ts';

/** Tells how long the store takes for what every turn does, ms. Changes nothing else. */
export function timeStore(
  driver: StoreDriver,
  clock: Pick<Clock, 'monotonic'>,
  took: (ms: number) => void,
): StoreDriver {
  function timed<A extends unknown[], T>(work: (...args: A) => Promise<T>) {
    return async (...args: A): Promise<T> => {
      const began = clock.monotonic();
      try {
        return await work(...args);
      } finally {
        took(clock.monotonic() - began);
      }
    };
  }

  return {
    ...driver,
    append: timed((...args) => driver.append(...args)),
    readEvent: timed((...args) => driver.readEvent(...args)),
    acquire: timed((...args) => driver.acquire(...args)),
    compareAndSet: timed((...args) => driver.compareAndSet(...args)),
    readRegister: timed((...args) => driver.readRegister(...args)),
    swap: timed((...args) => driver.swap(...args)),
  };
}
