// What a column's reader has seen, counted: twice, lost, taken back, and how long nothing came.
//
// Knows nothing of networks, clocks and pages: times are given, in milliseconds. An answer may be given in several
// runs, as when a prompt is sent again; in each its events are numbered from 1.

const UNNOTICED_MS = 1_000; // a shorter silence is not one
const DEAF_MS = 3_000; // what was said so long ago should have come

export class Tally {
  constructor(startedAt) {
    this.startedAt = startedAt;
    this.newsAt = startedAt;
    this.silentMs = 0;
    this.twice = 0;
    this.takenBack = 0;
    this.points = [{ at: startedAt, number: 0 }];
    this.runs = new Map();
  }

  /** An event came to be seen. */
  show(run, number, at) {
    const seen = [...this.runs.values()].some((numbers) => numbers.has(number));
    if (seen) this.twice += 1;
    this.run(run).add(number);
    this.silentMs += Math.max(0, at - this.newsAt - UNNOTICED_MS);
    this.newsAt = at;
    this.points.push({ at, number });
  }

  /** Events did not survive: others come in their place, under the same numbers. */
  rewind(run, numbers, at) {
    for (const number of numbers) this.run(run).delete(number);
    this.takenBack += numbers.length;
    this.points.push({ at, number: Math.max(0, ...this.run(run)) });
  }

  /** So many events were taken back from the screen, and will be said again by others. */
  withdraw(count) {
    this.takenBack += count;
  }

  /** The answer begins again, as another run. */
  begin(run, at) {
    this.run(run);
    this.points.push({ at, number: 0 });
  }

  /** Nothing more is waited for. */
  end(at) {
    this.silentMs = this.counts(at, {}).silentMs;
    this.endedAt = at;
  }

  /** The counts at a time; `said` holds, for each run, the number of the last event that was said at all. */
  counts(at, said) {
    const names = [...this.runs.keys()];
    const lost = names.map((run) => {
      const numbers = this.runs.get(run);
      // Of the run that is still read, what is yet to come is not lost; what was passed over is.
      const open = run === names.at(-1) && this.endedAt === undefined;
      const due = open ? Math.max(0, ...numbers) : said[run] ?? 0;
      return Math.max(0, due - numbers.size);
    });
    const sinceMs = this.endedAt === undefined ? Math.max(0, at - this.newsAt - UNNOTICED_MS) : 0;
    return {
      twice: this.twice,
      lost: lost.reduce((sum, one) => sum + one, 0),
      takenBack: this.takenBack,
      silentMs: this.silentMs + sinceMs,
      isDeaf: this.isDeaf(at, said),
    };
  }

  /** Whether there has been news for a while that does not come. */
  isDeaf(at, said) {
    const [run, numbers] = [...this.runs].at(-1) ?? [];
    return this.endedAt === undefined && at - this.newsAt > DEAF_MS && said[run] > Math.max(0, ...numbers);
  }

  run(name) {
    if (!this.runs.has(name)) this.runs.set(name, new Set());
    return this.runs.get(name);
  }
}
