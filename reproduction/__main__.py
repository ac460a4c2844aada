from reproduction.commands import main

if __name__ == "__main__":  # measuring processes import this module again
    main()
