import type { Admission, Entry } from './admission.ts';

const ADMITTED: Entry = { kind: 'admitted', leave: async () => {} };

/** No caps: everybody may work at once, and nobody is asked (C4). */
export function createOpenAdmission(): Admission {
  return {
    enter: async () => ADMITTED,
    takeCall: async () => 0,
    close: async () => {},
  };
}
