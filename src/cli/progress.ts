/** Tells on stderr how far something is that takes longer than a second; on what is no terminal, once. */
export interface Progress {
  tell: (what: string) => void;
  end: () => void;
}

const PATIENCE_MS = 1_000;
const EVERY_MS = 200;

export function createProgress(task: string): Progress {
  const { stderr } = process;
  let next = Date.now() + PATIENCE_MS;
  let told = 0;

  function tell(what: string): void {
    if (Date.now() < next || (told > 0 && !stderr.isTTY)) return;
    next = Date.now() + EVERY_MS;
    told += 1;
    const line = what === '' ? `${task}…` : `${task}: ${what}`;
    stderr.write(stderr.isTTY ? `\r\u001b[K${line}` : `${line}\n`);
  }

  const timer = setTimeout(() => tell(''), PATIENCE_MS);
  return {
    tell,
    end() {
      clearTimeout(timer);
      if (told > 0 && stderr.isTTY) stderr.write('\r\u001b[K');
    },
  };
}
