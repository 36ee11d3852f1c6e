import type { StoreDriver } from '../../src/store/driver.ts';

/** The same driver; the names of called methods are added to `called`. */
export function callsOf(driver: StoreDriver, called: Set<string>): StoreDriver {
  const methods = Object.entries(driver).filter(([, value]) => typeof value === 'function');
  return Object.fromEntries(
    methods.map(([name, method]) => [
      name,
      (...args: unknown[]) => {
        called.add(name);
        return (method as (...given: unknown[]) => unknown)(...args);
      },
    ]),
  ) as unknown as StoreDriver;
}
