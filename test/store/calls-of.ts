import type { StoreDriver } from '../../src/store/driver.ts';
import { wrapMethods } from '../../src/store/wrap-methods.ts';

/** The same driver; the names of called methods are added to `called`, those of the inbox too. */
export function callsOf(driver: StoreDriver, called: Set<string>): StoreDriver {
  const noting: Parameters<typeof wrapMethods>[1] =
    (method, name) =>
    (...args) => {
      called.add(name);
      return method(...args);
    };
  return { ...wrapMethods(driver, noting), inbox: wrapMethods(driver.inbox, noting) };
}

/** Methods of the driver that were not called. */
export function uncalledOf(driver: StoreDriver, called: ReadonlySet<string>): string[] {
  const names = [...Object.entries(driver), ...Object.entries(driver.inbox)];
  return names.flatMap(([name, value]) => (typeof value === 'function' && !called.has(name) ? [name] : []));
}
