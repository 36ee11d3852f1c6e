import { useRef } from 'preact/hooks';
import { computed } from '@preact/signals';
import { Icon } from '../shared/icon.tsx';
import { duration, whole } from '../shared/format.ts';
import { live } from '../state/live.ts';
import {
  changeSpeed,
  goLive,
  goTo,
  isPast,
  isPlaying,
  replay,
  shownSeq,
  silence,
  speed,
  step,
  togglePlay,
} from '../state/past.ts';
import { MAX_SILENCE_MS, SPEEDS } from '../state/player.ts';
import { head } from '../state/selection.ts';
import '../style/scrubber.css';

const THROTTLE_MS = 60;

const marks = computed(() => {
  const projection = live.value;
  const end = Math.max(1, head.value);
  const failures = (projection?.turns ?? []).flatMap(({ status, to }) =>
    status === 'failed' && to !== null ? [{ kind: 'failed', seq: to }] : [],
  );
  const compactions = (projection?.compactions ?? []).map(({ seq }) => ({ kind: 'compaction', seq }));
  return [...failures, ...compactions].map((mark) => ({
    ...mark,
    share: (mark.seq - 1) / Math.max(1, end - 1),
  }));
});

/** A slider over the whole conversation. The page shows the system at the chosen moment. */
export function Scrubber() {
  const last = useRef(0);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const end = head.value;
  const at = shownSeq.value;
  const onInput = (event: InputEvent) => {
    const seq = Number((event.currentTarget as HTMLInputElement).value);
    clearTimeout(timer.current);
    const wait = Math.max(0, last.current + THROTTLE_MS - Date.now());
    timer.current = setTimeout(() => {
      last.current = Date.now();
      goTo(seq);
    }, wait);
  };
  const isOver = at >= end;
  return (
    <footer class="scrubber" aria-label="Shown moment">
      <button type="button" class="tool" aria-label="First event" disabled={at <= 1} onClick={() => goTo(1)}>
        <Icon name="first" />
      </button>
      <button
        type="button"
        class="tool"
        aria-label="Previous event"
        disabled={at <= 1}
        onClick={() => step(-1)}
      >
        <Icon name="back" />
      </button>
      <button
        type="button"
        class="tool"
        aria-label={isPlaying.value || !isPast.value ? 'Stop here' : 'Continue'}
        title="Stop, play (space)"
        disabled={end === 0}
        onClick={togglePlay}
      >
        <Icon name={isPlaying.value || !isPast.value ? 'pause' : 'play'} />
      </button>
      <button type="button" class="tool" aria-label="Next event" disabled={isOver} onClick={() => step(1)}>
        <Icon name="next" />
      </button>
      <div class="scrubber-track">
        <svg class="scrubber-marks" aria-hidden="true" preserveAspectRatio="none" viewBox="0 0 1000 8">
          {marks.value.map(({ kind, seq, share }) => (
            <rect
              key={`${kind}${seq}`}
              class={`scrubber-${kind}`}
              x={share * 1000 - 1}
              width="2"
              height="8"
            />
          ))}
        </svg>
        <input
          type="range"
          min={1}
          max={Math.max(1, end)}
          value={at}
          disabled={end < 2}
          aria-label="Last event shown"
          aria-valuetext={isPast.value ? `event ${at} of ${end}` : `live, event ${end}`}
          onInput={onInput}
        />
      </div>
      <span class="scrubber-seq">
        {whole(at)} / {whole(end)}
      </span>
      <Replay end={end} />
    </footer>
  );
}

/** The speed of a replay, what it skips, and its start and stop. */
function Replay({ end }: { end: number }) {
  return (
    <>
      <select
        class="scrubber-speed"
        aria-label="Speed of the replay"
        title="Speed of the replay (< >)"
        value={speed.value}
        onChange={({ currentTarget: { value } }) => changeSpeed(SPEEDS.find((each) => each === value))}
      >
        {SPEEDS.map((each) => (
          <option key={each} value={each}>
            {each === 'real' ? 'as it was' : `${each}×`}
          </option>
        ))}
      </select>
      <span class="scrubber-silence" role="status">
        {silence.value !== null &&
          `${duration(silence.value)} of silence, shown as ${MAX_SILENCE_MS / 1_000} s`}
      </span>
      {isPast.value ? (
        <button type="button" class="button" title="Live (l)" onClick={goLive}>
          Go live
        </button>
      ) : (
        <button
          type="button"
          class="button"
          disabled={end < 2}
          title="Play from the first event (r)"
          onClick={replay}
        >
          Replay
        </button>
      )}
    </>
  );
}
